/* on_delete: delete: the targets of a deleted source go, and the targets of a source that is there again stay.

One source and two targets; the application deletes the source and puts it again. A worker that handles the delete lists
the targets and removes each by a transaction: the source is absent, and the target still names it. A late rename may write
a copy meanwhile. */
#ifndef RENAMES
#define RENAMES 0
#endif
#ifndef PUTS
#define PUTS 0
#endif
bool source = true; byte value = 1; bool target[2] = true; byte copy[2] = 1;
byte deletes = 1, puts = PUTS, renames = RENAMES; byte pushes, removes, busy; bool late; byte late_value;
#define QUIET (busy == 0 && pushes == 0 && removes == 0 && !late)
#define CHECK assert(!QUIET || source || puts < PUTS || (!target[0] && !target[1]))

active proctype application() {
end: do
  :: atomic { deletes > 0 && source -> deletes--; source = false; removes++; printf("application: delete the source\n") }
  :: atomic { puts > 0 && !source -> puts--; source = true; pushes++; printf("application: put the source again\n") }
  :: atomic { renames > 0 && source -> renames--; value = 2; pushes++; printf("application: rename the source\n") }
  od
}

active proctype network() {
end: do :: atomic { late -> printf("the late write arrives\n"); if :: target[0] && copy[0] != late_value -> copy[0] = late_value :: else fi; late = false; late_value = 0; CHECK } od
}

active [2] proctype worker() {
  byte t, v; byte todo; byte seen[2];
end: do
  :: atomic { pushes > 0 -> pushes--; busy++; v = value; printf("push: read the source\n") }
     atomic { if :: target[0] && source -> copy[0] = v :: target[0] && !late -> late = true; late_value = v; printf("the write is in flight\n") :: else fi; v = 0; busy--; CHECK }
  :: atomic { removes > 0 -> removes--; busy++; seen[0] = copy[0]; seen[1] = copy[1];
       todo = (target[0] -> 1 : 0) + (target[1] -> 2 : 0); printf("list the targets of the deleted source\n") }
     do
     :: todo != 0 ->
        atomic {
          if :: todo & 1 -> t = 0 :: else -> t = 1 fi; todo = todo & ~(1 << t);
          if
#if defined(NO_ABSENT_CHECK)    /* invariant 6: the transaction checks that the source is absent */
          :: target[t] ->
#elif defined(COMPARE_COPY)     /* invariant 6: the delete compares only the link, not the copy */
          :: target[t] && !source && copy[t] == seen[t] ->
#else
          :: target[t] && !source ->
#endif
             assert(!source);   /* no target of a source that exists is deleted */
             printf("  written: delete target %d\n", t); target[t] = false; copy[t] = 0
          :: else -> printf("  refused: target %d\n", t)
          fi; t = 0 }
     :: else -> break
     od;
     atomic { seen[0] = 0; seen[1] = 0; busy--; CHECK }
  od
}
