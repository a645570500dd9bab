#include "textflag.h"

// func fence()
//
// DMB ISH: every load and store before it is seen by the other cores before any after it.
TEXT ·fence(SB), NOSPLIT, $0-0
	DMB $0xB
	RET
