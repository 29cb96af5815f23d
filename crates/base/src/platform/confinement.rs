//! The confinement of a process that works on bytes which may be hostile.

#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::io;

/// The limits of a process that reads bytes which may be hostile.
#[derive(Debug, Clone, Copy)]
pub struct Confinement {
    /// The most memory that the process may take, in bytes.
    pub memory: u64,
    /// The most processor time that the process may take, in seconds.
    pub seconds: u64,
}

impl Confinement {
    /// Confines this process for good: its memory and time are limited, and it can write no file. On Linux it can open no file,
    /// reach no network and start no process either, and on Windows start no process. Pipes that are open stay usable. macOS
    /// does not enforce the limit of memory.
    ///
    /// # Errors
    /// The error of the system if a limit that it has cannot be set.
    pub fn enter(self) -> io::Result<()> {
        super::system::limit_resources(self)?;
        refuse_system_calls()
    }
}

/// Allows this process only the system calls of a computation on bytes in memory and on open pipes.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
fn refuse_system_calls() -> io::Result<()> {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let allowed = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_prctl,
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_rseq,
        libc::SYS_clock_gettime,
        libc::SYS_getrandom,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_tgkill,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    let rules = allowed.into_iter().map(|call| (call, Vec::new())).collect();
    // A refused call fails, so that a library that asks for more than it needs goes on.
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, architecture);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    match seccompiler::apply_filter_all_threads(&program) {
        Ok(()) => Ok(()),
        // The system has no such filters. The limits of resources stay.
        Err(seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error))
            if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
        {
            tracing::debug!("system calls cannot be refused here: {error}");
            Ok(())
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
fn refuse_system_calls() -> io::Result<()> {
    Ok(())
}
