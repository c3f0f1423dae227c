"""The facts about AWS, watched: `make facts` compares them with the newest botocore."""
