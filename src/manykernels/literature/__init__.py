"""The methods that the papers compare with, each on the parts that it shares with ours."""
