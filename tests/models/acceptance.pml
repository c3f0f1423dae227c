/* acceptance: until its backfill, a rule changes only a value that it would have made itself.

The application owns a value on the target. A new rule with a typo names that attribute. A record shows the source before and
after a change. The rule may write only if the target holds what the rule makes of the source before. */
byte source = 1, target; bool record, own; byte old; byte writes = 2;

active proctype application() {
  if :: target = 7; own = true :: target = 1; own = false fi;      /* a value of its own, or the copy that its own code wrote */
end: do
  :: atomic { writes > 0 && !record -> writes--; old = source; source = (source == 1 -> 2 : 1); record = true; printf("application: the source = %d, before %d\n", source, old) }
  od
}

active proctype worker() {
  byte seen;
end: do
  :: atomic { record -> seen = target; printf("read the target: %d\n", seen) }
     atomic {
       record = false;
       if
#ifdef NO_ACCEPTANCE            /* acceptance: the value must be what the rule would have made of the source before */
       :: seen != source ->
#else
       :: seen != source && seen == old ->
#endif
          assert(!own);         /* a value of the application is not replaced */
          printf("  written: the target = %d\n", source); target = source
       :: else -> printf("report what the rule would change\n")
       fi; seen = 0 }
  od
}
