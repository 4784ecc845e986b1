# calve, with a `cd` into the worktree that was added or named, and out of one that was removed: calve prints where to go.
function calve --description 'Instant, isolated, writable working copies'
    set -l calve_words (string match -v -- '-*' $argv)
    switch "$calve_words[1] $calve_words[2]"
        case 'worktree add' 'wt add' 'worktree cd' 'wt cd'
        case 'worktree remove' 'worktree rm' 'wt remove' 'wt rm'
        case '*'
            command calve $argv
            return
    end
    set -l calve_said (command calve $argv)
    set -l calve_code $status
    if test (count $calve_said) -gt 0
        printf '%s\n' $calve_said
    end
    if test $calve_code -eq 0 -a (count $calve_said) -eq 1; and test -d "$calve_said"
        # By fish's function and not the builtin, which forgets where `cd -` goes. The path is absolute: no option, and not in CDPATH.
        cd $calve_said
    end
    return $calve_code
end
