# calve, with a `cd` into the worktree that was added or named, and out of one that was removed: calve prints where to go.
calve() {
    local calve_command='' calve_word=''
    for calve_word in "$@"; do
        case "$calve_word" in
        -*) continue ;;
        esac
        [ -z "$calve_command" ] || break
        calve_command=$calve_word
    done
    case "$calve_command $calve_word" in
    'worktree add' | 'wt add' | 'worktree cd' | 'wt cd') ;;
    'worktree remove' | 'worktree rm' | 'wt remove' | 'wt rm') ;;
    *)
        command calve "$@"
        return
        ;;
    esac
    local calve_said calve_code
    calve_said=$(command calve "$@")
    calve_code=$?
    if [ -n "$calve_said" ]; then
        printf '%s\n' "$calve_said"
    fi
    if [ "$calve_code" -eq 0 ] && [ -d "$calve_said" ]; then
        builtin cd -- "$calve_said" || return
    fi
    return "$calve_code"
}
