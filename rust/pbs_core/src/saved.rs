// SPDX-License-Identifier: GPL-2.0

//! Macros that save types as words, for snapshots of a node.

/// Saves a structure field by field.  The brackets have the path to this folder.
macro_rules! saved {
    ([$($up:tt)+] $type:ident { $($field:ident),* $(,)? }) => {
        impl $($up)+::words::Saved for $type {
            fn save(&self, to: &mut impl FnMut(u64)) {
                // A field that is not in the list does not compile.
                let $type { $($field),* } = self;
                $($field.save(to);)*
            }
        }

        #[cfg(any(test, feature = "std"))]
        impl $($up)+::restored::Restored for $type {
            fn load(
                from: &mut $($up)+::restored::Words<'_>,
            ) -> Result<$type, $($up)+::restored::SnapshotError> {
                use $($up)+::restored::Restored;
                Ok($type { $($field: Restored::load(from)?),* })
            }
        }
    };
}

/// Saves a choice without fields by its place in the list.
macro_rules! saved_choice {
    ([$($up:tt)+] $type:ident { $($choice:ident),* $(,)? }) => {
        impl $($up)+::words::Saved for $type {
            fn save(&self, to: &mut impl FnMut(u64)) {
                // A choice that is not in the list does not compile.
                match self {
                    $($type::$choice => {})*
                }
                let all = [$($type::$choice),*];
                let place = all.iter().position(|choice| choice == self);
                to(place.unwrap_or(all.len()) as u64);
            }
        }

        #[cfg(any(test, feature = "std"))]
        impl $($up)+::restored::Restored for $type {
            fn load(
                from: &mut $($up)+::restored::Words<'_>,
            ) -> Result<$type, $($up)+::restored::SnapshotError> {
                let all = [$($type::$choice),*];
                let place = <u32 as $($up)+::restored::Restored>::load(from)?;
                all.get(place as usize).copied().ok_or(from.refusal())
            }
        }
    };
}
