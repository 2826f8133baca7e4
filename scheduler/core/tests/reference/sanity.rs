//! The reference by itself, on stories whose outcome is known without it.

