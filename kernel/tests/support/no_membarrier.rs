//! Takes `membarrier(2)` away from a thread, as a sandbox does.

/// From now on the system refuses membarriers to the calling thread, and to the threads that it starts.
#[allow(unsafe_code, reason = "no crate of ours has this call")]
pub(crate) fn forbid_membarriers() {
    // Loads the number of the call, and compares it.
    let mut program = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            1,
            u32::try_from(libc::SYS_membarrier).unwrap(),
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        ),
    ];
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap(),
        filter: program.as_mut_ptr(),
    };
    rustix::thread::set_no_new_privs(true).unwrap();
    // SAFETY: the filter is valid during the call, which copies it.
    let refused = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
        )
    };
    assert_eq!(refused, 0, "{}", std::io::Error::last_os_error());
    assert!(rustix::thread::membarrier_query().is_empty());
}

/// An instruction of a filter; `if_equal` is how many instructions a comparison that holds leaves out.
fn instruction(code: u32, if_equal: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: if_equal,
        jf: 0,
        k,
    }
}
