# calve, with a `cd` into the worktree that `calve worktree add` prints the path of.
calve() {
    case "${1-} ${2-}" in
    'worktree add' | 'wt add') ;;
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
