use schemars::JsonSchema;
use serde::Serialize;

use crate::values::ReceiptPath;

/// The report of `calve volume` with any of its commands: the volumes that it is about.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "schema", rename = "calve.volumes/1")]
pub struct VolumesReceipt {
    /// The volumes.
    pub volumes: Vec<VolumeReceipt>,
}

/// A volume. What is not known, because its record is damaged or its image missing, is null.
#[derive(Debug, Default, JsonSchema, Serialize)]
pub struct VolumeReceipt {
    /// Its name.
    pub name: String,
    /// The UUID of its file system.
    pub uuid: Option<String>,
    /// The file that it is in.
    pub image: Option<ReceiptPath>,
    /// The directory that it is mounted on when it is attached.
    pub mount_point: Option<ReceiptPath>,
    /// It is attached.
    pub attached: bool,
    /// The loop devices that have its image.
    pub devices: Vec<ReceiptPath>,
    /// The size of the image.
    pub size_bytes: Option<u64>,
    /// The space that the image takes up on the host.
    pub allocated_bytes: Option<u64>,
    /// The free space of the host's file system.
    pub host_free_bytes: Option<u64>,
    /// The findings of `calve volume doctor`.
    pub problems: Vec<VolumeProblem>,
}

/// Something that is wrong with a volume.
#[derive(Debug, JsonSchema, Serialize)]
pub struct VolumeProblem {
    /// Its name.
    #[schemars(extend("enum" = calve_volume::Problem::NAMES))]
    pub code: &'static str,
    /// The finding, for people.
    pub message: String,
    /// It was put right.
    pub repaired: bool,
}
