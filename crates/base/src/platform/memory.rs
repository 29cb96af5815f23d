//! Memory that is given back to the system. One of five files with unsafe code: it calls functions of the allocator and of
//! the system.
#![allow(unsafe_code, reason = "calls of the allocator and of the system")]

/// Gives free memory back to the system. The allocators do that by themselves only while memory is allocated and freed.
/// Free memory of other threads stays with them. The call takes some milliseconds, and the next allocations need new
/// pages, so it is made when much memory was freed and nothing waits.
pub fn release_free_memory() {
    // SAFETY: The function has no precondition. It may be called by any thread at any time. In a program with another allocator
    // it does nothing.
    unsafe { libmimalloc_sys::mi_collect(true) }
    // SQLite and usearch allocate by the C library. glibc keeps free pages that lie below a page in use: after a catalog was
    // checked, that is all of SQLite's page cache.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: The function has no precondition. It may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Keeps free memory until the process ends, which is about to happen: giving it back piece by piece takes longer than leaving
/// it to the system.
pub fn keep_free_memory() {
    set_purge_delay(-1);
}

/// Keeps free memory for a second, as a server does that answers calls one after another: they need as much again. Without
/// that, the allocator gives it back after ten milliseconds, and clearing new pages takes a fifteenth of the processor time of
/// searches. A tenth of a second would take 20 MB less, and make the slowest searches slower.
pub fn keep_free_memory_for_a_second() {
    set_purge_delay(1000);
}

/// Sets after how many milliseconds free memory is given back; −1 stands for never.
fn set_purge_delay(milliseconds: std::ffi::c_long) {
    // `mi_option_purge_delay` of mimalloc.h, which the crate does not name.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: The function has no precondition, and ignores an option that it does not know.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, milliseconds) }
}

/// Gives the pages back that hold a part of the program's own file, for a part that was read as a whole, or here and there.
/// What is read of it later comes from the file again. On other systems than Linux it does nothing.
pub fn release_program_pages(part: &'static [u8]) {
    #[cfg(target_os = "linux")]
    {
        let page = rustix::param::page_size();
        let before = part.as_ptr().align_offset(page).min(part.len());
        let whole = part.get(before..).unwrap_or_default();
        let length = whole.len() / page * page;
        // SAFETY: Only whole pages of a constant are named, which nobody writes. They are mapped from the program's file, which
        // has the same bytes when they are read again.
        let released = unsafe {
            rustix::mm::madvise(whole.as_ptr().cast_mut().cast(), length, rustix::mm::Advice::LinuxDontNeed)
        };
        // The memory stays in use then, which changes no result.
        released.unwrap_or_default();
    }
    #[cfg(not(target_os = "linux"))]
    let _ = part;
}
