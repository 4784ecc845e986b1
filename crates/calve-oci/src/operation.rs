calve_core::operations! {
    /// An operation that failed, here or at the registry. Displayed, it is a verb phrase, which a path may follow.
    pub enum Operation {
        Create = "create",
        CreateDirectory = "create directory",
        CreateLink = "create link",
        Encode = "encode",
        FetchPart = "fetch a part of the image",
        FetchParts = "fetch parts of the image",
        KeepPart = "keep a part of an image in",
        List = "list",
        LookForPart = "look for a part of the image",
        Open = "open",
        ReadImage = "read the image",
        ReadPart = "read a part of",
        Send = "send",
        SendIndex = "send the index of",
        SendManifest = "send the manifest",
        SetAttributes = "set the attributes of",
        SetMode = "set the mode of",
        Stat = "look at",
        StoreImage = "store the image",
        StorePart = "store a part of the image",
        Write = "write",
        WriteLayer = "write a layer of",
    }
}
