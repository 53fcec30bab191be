// SPDX-License-Identifier: GPL-2.0
//! Plan processes are processes like others, and leave the others alone.

pub mod accounts;
pub mod around;
pub mod calls;
pub mod chaos;
pub mod children;
pub mod exec;
pub mod files;
pub mod hotplug;
pub mod inheritance;
pub mod kill;
pub mod policy;
pub mod pressure;
pub mod scene;
pub mod signal;
pub mod sleeps;
pub mod stop;
pub mod storm;
pub mod suites;
