/* Two versions of the rules: no part of a fan-out is lost while old and new workers run side by side.

The new version renames a rule, and adds another one. A worker sends the rest of a fan-out as a message with the name of a
rule. A worker that does not know the name fails the message, so that it comes again. ROLLBACK: the old version may return. */
#define OLD 1
#define RENAMED 2               /* the new name of the old rule */
#define ADDED 3
bool newer; bool rolled_back;   /* which version new workers have */
bool done_old, done_added;      /* the rest of the fan-out of either rule is done */
byte message_old, message_added, deploys = 1;
byte started;
#define KNOWS(version, name) ((name) == OLD || ((version) && ((name) == RENAMED || (name) == ADDED)))
#ifdef NEW_NAMES                /* a message names a rule by the name that both versions know: the former one */
#define NAME(version) ((version) -> RENAMED : OLD)
#else
#define NAME(version) OLD
#endif

active proctype deployment() {
end: do
  :: atomic { !newer && deploys > 0 -> deploys--; newer = true; printf("deploy the new version\n") }
#ifdef ROLLBACK
  :: atomic { newer && !rolled_back && started >= 1 && message_added == 0 -> rolled_back = true; newer = false; printf("deploy the old version again\n") }
#endif
  od
}

active [2] proctype worker() {
  bool version; byte name;
end: do
  :: atomic { started == 0 -> started = 1; version = newer; name = NAME(version); message_old = name; printf("relay the rest of the old rule as %d\n", name) }
  :: atomic { newer && !rolled_back && started == 1 && !done_added && message_added == 0 -> started = 2; message_added = ADDED; printf("relay the rest of the added rule\n") }
  :: atomic { message_old != 0 -> version = newer; name = message_old; printf("message for rule %d\n", name) }
     atomic {
       if
       :: KNOWS(version, name) -> done_old = true; message_old = 0
       :: !KNOWS(version, name) && rolled_back -> assert(false)     /* no worker will ever know this name */
       :: !KNOWS(version, name) && !rolled_back -> printf("fail the message: it comes again\n")
       fi; name = 0; version = false }
  :: atomic { message_added != 0 -> version = newer && !rolled_back;
       if :: version = false :: skip fi;                            /* an old worker may still run */
       printf("message for the added rule, to version %d\n", version) }
     atomic {
       if
       :: version -> done_added = true; message_added = 0
       :: else ->
#ifdef NO_FAILED_MESSAGE        /* a worker fails a message for a rule that it does not know */
          if :: message_added != 0 -> message_added = 0; assert(done_added) :: else fi
#else
          printf("fail the message: it comes again\n")
#endif
       fi; version = false }
  od
}
