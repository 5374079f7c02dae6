// SyncRules
