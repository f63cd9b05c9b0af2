"""Amazon SQS with boto3, against Ottla: set the endpoint and leave the rest.

A message that is not deleted is received again after its visibility timeout; one that no receiver
can handle goes to the dead-letter queue. `pip install boto3`, and `ottla serve --http 8080`.
"""

import json
import os

import boto3

GATEWAY = os.environ.get("OTTLA_GATEWAY_URL", "http://localhost:8080")

sqs = boto3.client(
    "sqs",
    endpoint_url=GATEWAY,
    region_name="us-east-1",
    aws_access_key_id="any",
    aws_secret_access_key="any",
)

failed = sqs.create_queue(QueueName="letters-failed")["QueueUrl"]
failed_arn = sqs.get_queue_attributes(QueueUrl=failed, AttributeNames=["QueueArn"])
redrive = {
    "deadLetterTargetArn": failed_arn["Attributes"]["QueueArn"],
    "maxReceiveCount": "2",
}
letters = sqs.create_queue(QueueName="letters", Attributes={"RedrivePolicy": json.dumps(redrive)})[
    "QueueUrl"
]

for name in ("anna", "ben", "nobody", "cleo"):
    sqs.send_message(QueueUrl=letters, MessageBody=f"dear {name}")

sent: set[str] = set()
while len(sent) < 3:
    found = sqs.receive_message(QueueUrl=letters, MaxNumberOfMessages=10, WaitTimeSeconds=5)
    for message in found.get("Messages", []):
        body, handle = message["Body"], message["ReceiptHandle"]
        if body == "dear nobody":  # Make it visible at once, for a retry.
            sqs.change_message_visibility(
                QueueUrl=letters, ReceiptHandle=handle, VisibilityTimeout=0
            )
        else:
            sqs.delete_message(QueueUrl=letters, ReceiptHandle=handle)
            sent.add(body)

lost: list[str] = []
while not lost:
    sqs.receive_message(QueueUrl=letters)  # Its second attempt, unless it had that already.
    found = sqs.receive_message(QueueUrl=failed, WaitTimeSeconds=1)
    lost = [message["Body"] for message in found.get("Messages", [])]
print(f"sent {len(sent)} letters; undeliverable: {', '.join(lost)}")
