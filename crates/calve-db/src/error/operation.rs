//! Operations that can fail.

use serde::{Deserialize, Deserializer, Serializer};

calve_core::operations! {
    /// An operation that failed. It displays as a verb phrase that a path follows.
    pub enum Operation {
        AskForGreeting = "ask for a greeting on",
        ChangeGroup = "change the group of",
        ChangeOwner = "change the owner of",
        Create = "create",
        CreateDirectory = "create directory",
        Empty = "empty",
        Find = "find",
        HoldServer = "hold the server of",
        Link = "link",
        List = "list",
        Listen = "listen at",
        Lock = "lock",
        Mount = "mount",
        Open = "open",
        OpenDirectory = "open directory",
        Read = "read",
        ReadLink = "read link",
        Remove = "remove",
        Rename = "rename",
        Replace = "replace",
        Run = "run",
        SetMode = "set the mode of",
        ShareLock = "share the lock of",
        Start = "start",
        Stat = "look at",
        Sync = "sync",
        TakePort = "take a port of",
        Talk = "talk on",
        Use = "use",
        Work = "work on",
        Write = "write",
        ; Clone(calve_core::error::Operation)
    }
}

/// Writes the text, as supervisors of earlier versions do.
pub(crate) fn serialize<S: Serializer>(operation: &Operation, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(operation)
}

/// Reads an operation. An unknown one becomes [`Operation::Work`].
pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Operation, D::Error> {
    Ok(Operation::from_text(&String::deserialize(from)?).unwrap_or(Operation::Work))
}

#[cfg(test)]
mod tests {
    use super::Operation;
    use crate::error::Error;

    #[test]
    fn an_operation_crosses_the_socket_as_its_text() {
        let error =
            Error::io(Operation::Clone(calve_core::error::Operation::CreateSubvolume), "/x", rustix::io::Errno::IO);
        let text = serde_json::to_string(&error).unwrap();
        assert!(text.contains("\"operation\":\"create a subvolume in\""), "{text}");
        let unknown = text.replace("create a subvolume in", "do what nobody knows with");
        for (text, expected) in
            [(&text, error.to_string()), (&unknown, error.to_string().replace("create a subvolume in", "work on"))]
        {
            assert_eq!(serde_json::from_str::<Error>(text).unwrap().to_string(), expected);
        }
    }
}
