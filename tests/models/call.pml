/* call: the function is called once for each change, although the stream delivers a record again.

The worker notes a call before and after it. A worker that finds the note before, and not the one after, does not know
whether the call happened: it calls again only after the other worker's time has passed. */
#ifndef REPEATS
#define REPEATS 1
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
byte records = 1, repeats = REPEATS, deaths = DEATHS, calls, died; bool before, after, dead;

active [2] proctype worker() {
end: do
  :: atomic { records > 0 -> if :: records-- :: repeats > 0 -> repeats-- fi; printf("the record of the change\n") }
     if
#ifdef NO_NOTE_BEFORE           /* call: noted before it is made */
     :: atomic { !after -> skip }
#else
     :: atomic { !after && (!before || dead) -> before = true; dead = false; printf("  written: the note before the call\n") }
     :: atomic { !after && before && !dead -> records++; printf("another worker calls: the record waits\n") } goto next
#endif
     :: atomic { after -> printf("the call was made\n") } goto next
     fi;
     atomic { calls++; printf("call the function\n"); assert(calls <= 1 + died) }
     if
#ifndef NO_NOTE_AFTER           /* call: and noted after it */
     :: atomic { after = true; printf("  written: the note after the call\n") }
#else
     :: atomic { before = false; printf("the note is lost\n") }
#endif
     :: atomic { deaths > 0 -> deaths--; died++; dead = true; records++; printf("the worker dies\n") }
     fi;
next: skip
  od
}
