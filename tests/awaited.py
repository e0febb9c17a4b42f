"""What is newer than the recorded campaign that serves without a GPU: nothing, after the next recording."""

EDITED = {("reduction", "float4"), ("scan", "decoupled_lookback")}
NEW = {("reduction", "single_launch")}
