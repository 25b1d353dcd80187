//! What is mounted in a container.

/// One mount in a container.
///
/// The runtime does not know the names of a pod's volumes, so they are not here.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct Mount {
    /// Where it appears in the container.
    pub container_path: String,
    /// Where it comes from on the host. Empty for an image.
    pub host_path: String,
    /// Whether it cannot be written through.
    pub read_only: bool,
    /// Whether what is mounted below it cannot be written through either.
    pub recursive_read_only: bool,
    /// Whether it is given the container's SELinux label.
    pub selinux_relabel: bool,
    /// Which later mounts are seen on the other side.
    pub propagation: MountPropagation,
    /// The image that is mounted, if it is one.
    pub image: Option<String>,
    /// The folder of that image that is mounted. Empty: all of it.
    pub image_sub_path: String,
}

/// Which mounts made later, below a mount, are seen on its other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum MountPropagation {
    /// None: `rprivate` on Linux.
    #[default]
    Private,
    /// Those of the host, in the container: `rslave` on Linux.
    HostToContainer,
    /// Those of either, in the other: `rshared` on Linux.
    Bidirectional,
}
