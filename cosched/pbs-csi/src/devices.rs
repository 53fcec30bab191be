// SPDX-License-Identifier: GPL-2.0
//! The devices of the node by type (§5.4.1), as all processes know them.

use crate::layout::{name_field, name_of, DeviceRecord, DEVICES_AT, DEVICE_CAPACITY};
use crate::node::Locked;
use crate::Error;

/// A type of device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name of the type, up to 31 visible ASCII characters.
    pub name: String,
    /// Bit set of the models that run on it.
    pub models: u32,
    /// Number of devices; for the CPU, its threads.
    pub count: u32,
}

impl Locked<'_> {
    /// The devices that there are. One whose record can't be has no models and no units.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub fn devices(&self) -> Result<Vec<Device>, Error> {
        let mut bytes = vec![0; self.header.device_count as usize * DeviceRecord::BYTES];
        self.node.read(&mut bytes, DEVICES_AT)?;
        let records = bytes.chunks_exact(DeviceRecord::BYTES).map(|bytes| {
            let mut own = [0; DeviceRecord::BYTES];
            own.copy_from_slice(bytes);
            DeviceRecord::from_bytes(&own)
        });
        Ok(records
            .map(|record| match name_of(&record.name) {
                Some(name) => Device { name, models: record.models, count: record.count },
                None => Device { name: "?".into(), models: 0, count: 0 },
            })
            .collect())
    }

    /// Enters devices, if they are not there already. The answer is the index of each, which
    /// is valid as long as the lock is held or there is a task. Without any the table begins
    /// anew.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceDiffers`] where one of the name has another count or other models;
    /// [`Error::Full`].
    pub fn join_devices(&mut self, devices: &[Device]) -> Result<Vec<u32>, Error> {
        self.sweep()?;
        if self.entries()?.is_empty() && self.header.device_count > 0 {
            self.header.device_count = 0;
            self.write_state()?;
        }
        let mut known = self.devices()?;
        let mut indices = Vec::with_capacity(devices.len());
        for device in devices {
            if name_of(&name_field(&device.name)).as_deref() != Some(&device.name) {
                return Err(Error::DeviceDiffers {
                    name: device.name.clone(),
                    why: "its name is not of 1 to 31 visible ASCII characters".into(),
                });
            }
            if let Some(index) = known.iter().position(|of| of.name == device.name) {
                let there = &known[index];
                if there != device {
                    let why = format!(
                        "it has count {} and models {:#x} there, {} and {:#x} here",
                        there.count, there.models, device.count, device.models
                    );
                    return Err(Error::DeviceDiffers { name: device.name.clone(), why });
                }
                indices.push(index as u32);
                continue;
            }
            if known.len() >= DEVICE_CAPACITY {
                return Err(Error::Full { what: "types of devices", capacity: DEVICE_CAPACITY });
            }
            let mut record = DeviceRecord::zero();
            record.name = name_field(&device.name);
            record.models = device.models;
            record.count = device.count;
            let at = DEVICES_AT + known.len() * DeviceRecord::BYTES;
            self.write(&record.to_bytes(), at)?;
            indices.push(known.len() as u32);
            known.push(device.clone());
            // After the record: a device that is counted is there.
            self.header.device_count = known.len() as u32;
            self.write_state()?;
        }
        Ok(indices)
    }
}
