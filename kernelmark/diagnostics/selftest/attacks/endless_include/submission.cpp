// Strategy: includes a file without an end, so that the compiler takes memory until the kernel kills it.
// Surface: the memory limit, met by a process that the runner started, and what the runner makes of its end.
#pragma message "attack: an endless file is included"
#include "/dev/zero"
