//! The free memory that mimalloc, the program's allocator, keeps. One of five files with unsafe code: it calls a C function.
#![allow(unsafe_code, reason = "a call of the allocator")]

/// Gives memory that is free back to the system, which the allocator does otherwise only while memory is allocated and freed.
/// Free memory in use by other threads stays there. It takes some milliseconds, and whoever allocates next pays for new pages,
/// so it is called when much memory was freed and nothing waits. In a program with another allocator it does nothing.
pub fn release_free_memory() {
    // SAFETY: The function has no precondition. It may be called by any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
