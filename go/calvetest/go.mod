module repository.invalid/calve/go/calvetest

go 1.19
