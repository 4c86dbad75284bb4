//! The input field: several lines, history, completion, keys of emacs or vi.
