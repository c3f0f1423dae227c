"""The world behind the ports of the pipeline: DynamoDB, memory, SQS, S3, streams, files, functions."""
