//! Memory that was freed and that the allocator keeps.
#![cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a call of the C library"))]

/// Gives memory that is free back to the system. The allocator of glibc keeps it otherwise; others do not need this.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and may be called by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
