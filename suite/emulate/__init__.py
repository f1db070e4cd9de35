"""Many hosts on one machine: network namespaces with shaped links, real ranks, computation slept from costs."""
