//! Decoders of the canonical codec.

use bytes::Bytes;
use troth_types::Wire;

/// Decodes and encodes again; nothing where the bytes do not decode.
pub(crate) type Again = fn(&Bytes) -> Option<Bytes>;

/// A decoder: what decodes must encode to the same bytes.
#[derive(Clone, Copy)]
pub struct Decoder {
    /// The type's whole name.
    pub name: fn() -> &'static str,
    again: Again,
}

/// The decoder of a type.
pub(crate) const fn of<T: Wire>() -> Decoder {
    Decoder { name: std::any::type_name::<T>, again: |bytes| Some(T::from_wire(bytes).ok()?.to_wire()) }
}

/// The decoder of a type that its crate does not show.
pub(crate) const fn hidden(name: fn() -> &'static str, again: Again) -> Decoder {
    Decoder { name, again }
}

/// Takes an input for one of these decoders: its first byte says which.
pub(crate) fn one_of(decoders: &[Decoder], input: &[u8]) {
    let Some((which, rest)) = input.split_first() else { return };
    let decoder = &decoders[usize::from(*which) % decoders.len()];
    let bytes = Bytes::copy_from_slice(rest);
    if let Some(again) = (decoder.again)(&bytes) {
        assert!(again == bytes, "{} has more than one encoding for one value", (decoder.name)());
    }
}

/// An input for the decoder of this type in its group.
pub(crate) fn seed<T: Wire>(group: &[Decoder], value: &T) -> Vec<u8> {
    let name = std::any::type_name::<T>();
    let which = group.iter().position(|decoder| (decoder.name)() == name).expect("the group has it");
    let mut input = vec![u8::try_from(which).expect("a group has few decoders")];
    value.encode(&mut input);
    input
}
