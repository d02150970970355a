package polyflake_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	polyflake "github.com/polyflake/polyflake/bindings-c/go"
)

func TestAnotherCopyOfTheLibraryIsWarnedOf(t *testing.T) {
	if os.Getenv("POLYFLAKE_TEST_COPIES") != "" {
		for node := range 2 {
			must(polyflake.New(polyflake.Node(uint64(node))))
		}
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	library := regexp.MustCompile(`/\S*/libpolyflake\.so\S*`).Find(maps)
	if runtime.GOOS != "linux" || err != nil || library == nil {
		t.Skip("the library is not a file that can be copied here")
	}
	// Under a different name, or the loader would mistake it for the library itself.
	copied := filepath.Join(t.TempDir(), "libpolyfl0ke.so.0")
	content := bytes.ReplaceAll(must(os.ReadFile(string(library))), []byte("libpolyflake.so.0"), []byte("libpolyfl0ke.so.0"))
	if err := os.WriteFile(copied, content, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, preload := range []string{"", copied} {
		process := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		process.Env = append(os.Environ(), "POLYFLAKE_TEST_COPIES=1", "LD_PRELOAD="+preload)
		out, err := process.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		warnings := 0
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "WARN polyflake: ") && strings.Contains(line, copied) &&
				strings.Contains(line, "/libpolyflake.so") && strings.Contains(line, "kind=copies") {
				warnings++
			}
		}
		want := 0
		if preload != "" {
			want = 1
		}
		if warnings != want {
			t.Errorf("with %q, %d warnings that name both, not %d: %s", preload, warnings, want, out)
		}
	}
}
