# Completions of tilec for bash, made by scripts/manuals.py.
_tilec() {
  local line=${COMP_LINE:0:COMP_POINT} word
  word=${line##*[[:space:]]}
  COMPREPLY=()
  case $word in
    --emit=*) COMPREPLY=($(compgen -W "ast tile placed sched llvm ptx cubin c" -- "${word#*=}")); return ;;
    --target=*) COMPREPLY=($(compgen -W "$(tilec --print-targets 2>/dev/null | sed -n '3,$s/^| `*\([a-z_0-9]*\).*/\1/p')" -- "${word#*=}")); return ;;
    --passes=*) COMPREPLY=($(compgen -W "$(tilec --print-passes 2>/dev/null | sed -n '3,$s/^| `*\([a-z_0-9]*\).*/\1/p')" -- "${word#*=}")); return ;;
    --dump-after=*) COMPREPLY=($(compgen -W "$(tilec --print-passes 2>/dev/null | sed -n '3,$s/^| `*\([a-z_0-9]*\).*/\1/p')" -- "${word#*=}")); return ;;
    --tensors=*) COMPREPLY=($(compgen -W "found stated none" -- "${word#*=}")); return ;;
    --diagnostics=*) COMPREPLY=($(compgen -W "text json" -- "${word#*=}")); return ;;
    -*)
      compopt -o nospace
      COMPREPLY=($(compgen -W '-o --emit= --target= -D --assume= --kernel= --config= --choices= --form= --prefix= --jobs= --cubin --standalone --describe -I --depfile= -O0 --passes= --dump-after= --verify --tensors= --locs --remarks --no-line-info --time-passes --diagnostics= --explain= --print-layout= --print-passes --print-ops --print-targets --print-diags --print-dtypes --help --version' -- "$word"))
      ;;
    *)
      compopt -o filenames
      COMPREPLY=($(compgen -d -- "$word") $(compgen -f -X '!*.@(tile|tir|ll)' -- "$word"))
      ;;
  esac
}
complete -F _tilec tilec
