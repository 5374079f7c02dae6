// TokenAuth
