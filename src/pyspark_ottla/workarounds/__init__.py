"""What works around Spark, one file each: the versions it is for, and what would end the need.

Importing any of them changes nothing; the function that each one has does.
"""
