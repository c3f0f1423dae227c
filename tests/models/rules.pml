/* One rule writes an attribute, and no rule feeds itself: then the pipeline comes to rest.

Each rule wants its own value. The record of a write asks for a look at every rule of the target. */
#define WRITES_MAX 6
byte copy, records = 1, writes;
#ifdef TWO_RULES                /* invariant 7: two rules write one attribute */
#define RULES 2
#else
#define RULES 1
#endif
active proctype worker() {
  byte rule;
end: do
  :: atomic { records > 0 -> records--; rule = 0;
       do
       :: rule < RULES ->
          if
          :: copy != 1 + rule -> copy = 1 + rule; records++; writes++; printf("  written: rule %d writes its value\n", rule);
             assert(writes < WRITES_MAX)        /* they undo each other for ever */
          :: else
          fi; rule++
       :: else -> break
       od }
  od
}
