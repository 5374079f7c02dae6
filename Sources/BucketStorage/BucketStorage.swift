// BucketStorage
