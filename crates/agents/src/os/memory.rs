//! Freed memory that the allocator keeps.
#![cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a call of the C library"))]

/// Returns free memory to the system. glibc's allocator would keep it; others do not need this.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and may be called by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
