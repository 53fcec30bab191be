// SPDX-License-Identifier: GPL-2.0
//! Records of fixed layout, read and written by copying bytes.
//!
//! A record is never a reference into memory that others can write: its bytes are copied
//! out, and each field is made of them. All bits are a value of each field type, so no
//! content of a file can be undefined behaviour.

/// A type all of whose bit patterns are values, without padding.
pub(crate) trait Field: Sized {
    /// Made of exactly as many bytes as it has.
    fn get(bytes: &[u8]) -> Self;
    /// Written to exactly as many bytes as it has.
    fn put(&self, bytes: &mut [u8]);
}

macro_rules! number {
    ($($kind:ty),*) => {$(
        impl Field for $kind {
            fn get(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<Self>()];
                own.copy_from_slice(bytes);
                Self::from_ne_bytes(own)
            }

            fn put(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}
number!(u8, u16, u32, u64);

impl<F: Field + Copy + Default, const N: usize> Field for [F; N] {
    fn get(bytes: &[u8]) -> Self {
        let mut own = [F::default(); N];
        for (field, bytes) in own.iter_mut().zip(bytes.chunks_exact(size_of::<F>())) {
            *field = F::get(bytes);
        }
        own
    }

    fn put(&self, bytes: &mut [u8]) {
        for (field, bytes) in self.iter().zip(bytes.chunks_exact_mut(size_of::<F>())) {
            field.put(bytes);
        }
    }
}

/// Declares a record of so many bytes, which its fields fill without a gap, and how it is
/// read and written.
macro_rules! record {
    (
        $(#[$about:meta])*
        pub struct $name:ident: $bytes:literal {
            $($(#[$of:meta])* pub $field:ident: $kind:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct $name {
            $($(#[$of])* pub $field: $kind,)*
        }

        const _: () = {
            assert!(size_of::<$name>() == $bytes);
            assert!(0 $(+ size_of::<$kind>())* == $bytes, "the compiler padded it");
        };

        impl $name {
            /// Length in the file.
            pub const BYTES: usize = $bytes;

            /// Name, offset and length in bytes of each field, as the C header has them.
            pub const FIELDS: &'static [(&'static str, usize, usize)] = &[
                $((stringify!($field), std::mem::offset_of!($name, $field), size_of::<$kind>()),)*
            ];

            /// Made of a copy of its bytes.
            pub fn from_bytes(bytes: &[u8; $bytes]) -> Self {
                Self {
                    $($field: {
                        let at = std::mem::offset_of!($name, $field);
                        <$kind as $crate::record::Field>::get(&bytes[at..at + size_of::<$kind>()])
                    },)*
                }
            }

            /// Returns the bytes of the record.
            pub fn to_bytes(self) -> [u8; $bytes] {
                let mut bytes = [0; $bytes];
                $({
                    let at = std::mem::offset_of!($name, $field);
                    let own = &mut bytes[at..at + size_of::<$kind>()];
                    $crate::record::Field::put(&self.$field, own);
                })*
                bytes
            }

            /// All of its bits zero.
            pub fn zero() -> Self {
                Self::from_bytes(&[0; $bytes])
            }
        }
    };
}
