// The rival oneTBB: a task group for each fork, in an arena with as many slots as there are workers.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <tbb/version.h>

#include <optional>

#include "forks.hpp"

namespace {

std::optional<tbb::global_control> limit;
std::optional<tbb::task_arena> arena;

struct OneTbb {
    template <class A, class B>
    static void join(A&& a, B&& b) {
        tbb::task_group group;
        group.run([&b] { b(); });
        a();
        group.wait();
    }

    template <class Work>
    static void enter(Work&& work) {
        arena->execute([&work] { work(); });
    }
};

void start(std::size_t workers) {
    limit.emplace(tbb::global_control::max_allowed_parallelism, workers);
    arena.emplace(static_cast<int>(workers));
}

}  // namespace

int main(int count, char** arguments) {
    const std::string version = "oneTBB " + std::to_string(TBB_VERSION_MAJOR) + "." +
                                std::to_string(TBB_VERSION_MINOR) + " task_group";
    return main_of(count, arguments, version, [](const std::string& workload, std::size_t workers) {
        run_forks<OneTbb>(workload, workers, start);
    });
}
