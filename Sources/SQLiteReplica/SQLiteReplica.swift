// SQLiteReplica
