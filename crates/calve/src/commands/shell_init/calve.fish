# calve, with a `cd` into the worktree that `calve worktree add` prints the path of.
function calve --description 'Instant, isolated, writable working copies'
    switch "$argv[1] $argv[2]"
        case 'worktree add' 'worktree remove'
        case '*'
            command calve $argv
            return
    end
    set -l calve_said (command calve $argv)
    set -l calve_code $status
    if test (count $calve_said) -gt 0
        printf '%s\n' $calve_said
    end
    if test $calve_code -eq 0 -a "$argv[2]" = add -a (count $calve_said) -eq 1; and test -d "$calve_said"
        builtin cd -- $calve_said
    else if not test -d "$PWD"
        # The worktree that this shell was in is gone.
        set -l calve_there $PWD
        while not test -d "$calve_there"
            set calve_there (path dirname -- $calve_there)
        end
        builtin cd -- $calve_there
    end
    return $calve_code
end
