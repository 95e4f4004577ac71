// The rival OpenMP: a task for each second half.
#include <omp.h>

#include "forks.hpp"

namespace {

struct OpenMp {
    template <class A, class B>
    static void join(A&& a, B&& b) {
#pragma omp task default(shared)
        b();
        a();
#pragma omp taskwait
    }

    template <class Work>
    static void enter(Work&& work) {
#pragma omp parallel
#pragma omp single
        work();
    }
};

}  // namespace

int main(int count, char** arguments) {
    const std::string version = "OpenMP tasks (GCC " __VERSION__ ")";
    const auto start = [](std::size_t workers) {
        omp_set_dynamic(0);
        omp_set_num_threads(static_cast<int>(workers));
    };
    return main_of(count, arguments, version, [&](const std::string& workload, std::size_t workers) {
        run_forks<OpenMp>(workload, workers, start);
    });
}
