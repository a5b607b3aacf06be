//! The trusted core: one attesting counter with USIG and CASH faces
