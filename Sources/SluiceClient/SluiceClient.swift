// SluiceClient
