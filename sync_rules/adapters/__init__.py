"""The world behind the ports of the pipeline: DynamoDB, memory, SQS, S3, files, functions."""
