// SQLGeneration
