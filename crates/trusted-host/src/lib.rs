//! The places a trusted core can live, behind one interface
