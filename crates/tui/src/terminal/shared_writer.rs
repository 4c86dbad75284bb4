//! A writer that several backends use, one after the other.

use std::{
    cell::RefCell,
    io::{self, Write},
    rc::Rc,
};

pub(super) struct SharedWriter<W>(Rc<RefCell<W>>);

impl<W> SharedWriter<W> {
    pub(super) fn new(writer: W) -> SharedWriter<W> {
        SharedWriter(Rc::new(RefCell::new(writer)))
    }
}

impl<W> Clone for SharedWriter<W> {
    fn clone(&self) -> SharedWriter<W> {
        SharedWriter(self.0.clone())
    }
}

impl<W: Write> Write for SharedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}
