// SyncProtocol
