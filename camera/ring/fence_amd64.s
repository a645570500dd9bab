#include "textflag.h"

// func fence()
//
// Stores stay in order among themselves and loads among themselves on x86, which is all that the sequence count
// needs; the call keeps the compiler from moving them.
TEXT ·fence(SB), NOSPLIT, $0-0
	RET
