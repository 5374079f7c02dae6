// SyncService
