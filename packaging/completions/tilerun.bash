# Completions of tilerun for bash, made by scripts/manuals.py.
_tilerun() {
  local line=${COMP_LINE:0:COMP_POINT} word
  word=${line##*[[:space:]]}
  COMPREPLY=()
  case $word in
    --device=*) COMPREPLY=($(compgen -W "cuda sim auto" -- "${word#*=}")); return ;;
    --target=*) COMPREPLY=($(compgen -W "$(tilec --print-targets 2>/dev/null | sed -n '3,$s/^| `*\([a-z_0-9]*\).*/\1/p')" -- "${word#*=}")); return ;;
    -*)
      compopt -o nospace
      COMPREPLY=($(compgen -W '--grid= --block= --shared= --cluster= --launches= --pdl --device= --target= -D -I --part --save= --check= --rtol= --atol= --tune --search --choices= --retune --bench --no-restore --warmup= --rep= --seed= --stats --ptx --no-specialise --threads= --no-races --max-instructions= --early-copies --help --version' -- "$word"))
      ;;
    *)
      compopt -o filenames
      COMPREPLY=($(compgen -d -- "$word") $(compgen -f -X '!*.@(tile|tir|ptx)' -- "$word"))
      ;;
  esac
}
complete -F _tilerun tilerun
