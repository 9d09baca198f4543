package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// webhook is `benches webhook`: a process that answers reviews until its standard input ends.
type webhook struct {
	Address  string `json:"address"`
	CABundle string `json:"caBundle"`
	command  *exec.Cmd
	input    io.Closer
}

// pinned is the command on this core, or on any if there is none.
func pinned(cpu, program string, given ...string) *exec.Cmd {
	if cpu == "" {
		return exec.Command(program, given...)
	}
	return exec.Command("taskset", append([]string{"-c", cpu, program}, given...)...)
}

func startWebhook(benches, cpu string) (*webhook, error) {
	command := pinned(cpu, benches, "webhook")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	server := &webhook{command: command, input: input}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), server)
	}
	if err != nil {
		server.stop()
		return nil, fmt.Errorf("%s webhook: %w", benches, err)
	}
	return server, nil
}

func (w *webhook) stop() {
	_ = w.input.Close()
	_ = w.command.Wait()
}

// ticks of a second in /proc: sysconf(_SC_CLK_TCK) is 100 on every Linux that Go supports.
const ticks = 100

// usage of a process, and of what it waited for: CPU time and resident bytes.
func usage(pid int) (time.Duration, uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name, in parentheses, may have spaces; the state is field 3.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 22 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has too few fields", pid)
	}
	var numbers [3]uint64
	for index, field := range []int{11, 12, 21} {
		if numbers[index], err = strconv.ParseUint(fields[field], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	return time.Duration(numbers[0]+numbers[1]) * time.Second / ticks, numbers[2] * uint64(os.Getpagesize()), nil
}
