"""How many engines a team needs: typing sessions simulated against a measured cost curve."""
